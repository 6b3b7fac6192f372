"""A machine goes away and comes back; one that does not is told with what can be done about it."""

import pytest

from fake_clock import FakeClock
from pgstrata.boots.reboot import Reboot
from pgstrata.errors import BootFailedError, HostLostError, HostNotFitError

OLD, NEW = "boot-1", "boot-2"


class Machine:
    """It answers by what it is at a time: a boot, or an error."""

    def __init__(self, *course):
        self.course, self.reopened = list(course), 0

    def read(self, path):
        now = self.course.pop(0) if len(self.course) > 1 else self.course[0]
        if isinstance(now, Exception):
            raise now
        return f"{now}\n".encode()

    def reopen(self):
        self.reopened += 1
        if isinstance(self.course[0], HostLostError):
            raise self.course.pop(0) if len(self.course) > 1 else self.course[0]


def gone():
    return HostLostError("the connection broke", where="ssh:db1")


def wait(machine):
    reboot = Reboot(name="ssh:db1", wanted="6.1", host=lambda: machine, reopen=machine.reopen, clock=FakeClock())
    reboot.wait(OLD)


def test_it_is_waited_for_until_it_has_booted():
    machine = Machine(OLD, OLD, gone(), gone(), gone(), NEW)
    wait(machine)
    assert machine.reopened == 3


def test_a_connection_that_was_made_before_it_went_down_is_no_boot():
    machine = Machine(OLD, gone(), OLD, NEW)
    wait(machine)
    assert machine.reopened == 2


def test_one_that_does_not_go_down_is_told():
    with pytest.raises(BootFailedError, match="is still up after 180 s"):
        wait(Machine(OLD))


def test_one_that_does_not_come_back_is_told_with_what_brings_it_back():
    with pytest.raises(BootFailedError, match="has not come back within 20 minutes") as caught:
        wait(Machine(OLD, gone()))
    assert "default entry was not changed" in caught.value.remedy
    assert "the same command again" in caught.value.remedy
    assert caught.value.details[0] == "the connection broke"


def test_one_that_is_back_and_not_as_it_should_be_ends_the_waiting():
    class Changed(Machine):
        def reopen(self):
            raise HostNotFitError("its host key has changed", where="ssh:db1")

    with pytest.raises(HostNotFitError, match="host key has changed"):
        wait(Changed(gone()))
