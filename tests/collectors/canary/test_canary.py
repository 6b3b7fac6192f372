import pytest

from pgstrata.collectors.canary import CanaryCollector
from pgstrata.errors import HostNotFitError, ParseError
from pgstrata.hosts.local import LocalHost
from pgstrata.ports.collector import CaptureSubject, Window

WINDOW = Window(seconds=1, transactions=1, client_cpu=0, postmaster_pid=None, transport_pids=(), server_version=180000)


def test_it_times_a_fixed_piece_of_work():
    canary = CanaryCollector()
    subject = CaptureSubject(host=LocalHost(), sql=None, server=None)
    (found,) = canary.parse(canary.capture(subject), canary.capture(subject), WINDOW)
    assert found.metric == "canary"
    assert 0.001 < found.value < 5


def test_a_host_that_cannot_run_it_gives_no_measurement():
    class Bare:
        def clock(self):
            return LocalHost().clock()

        def run(self, command, *, timeout):
            raise HostNotFitError("there is no sh")

    canary = CanaryCollector()
    nothing = canary.capture(CaptureSubject(host=Bare(), sql=None, server=None))
    assert canary.parse(nothing, b"seconds 0.02\n", WINDOW) == ()


def test_the_mean_of_both_sides_counts():
    (found,) = CanaryCollector().parse(b"seconds 0.020000\n", b"seconds 0.040000\n", WINDOW)
    assert found.value == pytest.approx(0.03)


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "soon"])
def test_what_is_no_time_is_an_error(number):
    with pytest.raises(ParseError, match="canary"):
        CanaryCollector().parse(f"seconds {number}\n".encode(), b"seconds 0.04\n", WINDOW)


def test_another_shape_is_an_error():
    with pytest.raises(ParseError, match="canary"):
        CanaryCollector().parse(b"20 ms\n", b"seconds 0.04\n", WINDOW)
