"""Connection strings with a password: the forms that libpq reads, and texts that it would read otherwise than people."""

from dataclasses import dataclass

CANARY = "geheim-7391"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where connection strings lead: as they stand in keywords, `folder` as in a URI."""

    host: str = "db"
    address: str = "::1"
    port: int = 5432
    user: str = "me"
    database: str = "app"
    folder: str = "%2FVar%2Frun"
    service: str = "prod"
    passfile: str = "/p"
    hosts: tuple = (("a", 1), ("b", 2))


def with_password(at, word):
    """Every form, leading to places, with the password that libpq takes; a word is in all of them."""
    hosts, ports = (",".join(map(str, each)) for each in zip(*at.hosts, strict=True))
    places = ",".join(f"{host}:{port}" for host, port in at.hosts)
    return {
        # keywords
        f"host={at.host} password={word} user={at.user}": word,
        f"password={word} host={at.host}": word,
        f"host={at.host}  password  =  {word}": word,
        f"host={at.host}\tpassword={word}\nuser={at.user}": word,
        f"host={at.host} password='{word}'": word,
        f"host={at.host} password='{word} more' user={at.user}": f"{word} more",
        f"host={at.host} password='it\\'s {word}' user={at.user}": f"it's {word}",
        f"host={at.host} password=it\\'s\\ {word} user={at.user}": f"it's {word}",
        f"host={at.host} password={word}\\\\": f"{word}\\",
        f"host={at.host} password={word}\\": word,
        f"host={at.host} password={word}\\ ": f"{word} ",
        f"host={at.host} password=a'{word}": f"a'{word}",
        f"host={at.host} password={word}=x": f"{word}=x",
        f"host={at.host} password=x\u00a0{word}": f"x\u00a0{word}",
        f"host={at.host} password={word}&password=x": f"{word}&password=x",
        f"host={at.host} password=x&password={word}": f"x&password={word}",
        f"host={at.host} password=old password={word}": word,
        f"host={at.host} password={word} application_name=postgres://x": word,
        f"host={at.host} password='postgres://{word}'": f"postgres://{word}",
        f"host={at.host} password=postgresql://a:{word}@b": f"postgresql://a:{word}@b",
        f"host={hosts} port={ports} password={word}": word,
        f"service={at.service} password={word}": word,
        f"host={at.host} passfile={at.passfile} tty=/dev/tty1 password={word}": word,
        # URIs
        f"postgresql://{at.user}:{word}@{at.host}/{at.database}": word,
        f"postgres://{at.user}:{word}@{at.host}/{at.database}": word,
        f"postgresql://{at.user}:{word}@": word,
        f"postgresql://:{word}@{at.host}": word,
        f"postgresql://{at.user}:a:{word}@{at.host}": f"a:{word}",
        f"postgresql://{at.user}:a+{word}@{at.host}": f"a+{word}",
        f"postgresql://{at.user}:%40%2F{word}@{at.host}/{at.database}": f"@/{word}",
        f"postgresql://{at.user}:%FF{word}@{at.host}/{at.database}": f"\udcff{word}",
        f"postgresql://{at.user}:{word}@[{at.address}]:{at.port}/{at.database}?sslmode=require": word,
        f"postgresql://{at.user}:{word}@{places}/{at.database}": word,
        f"postgresql://{at.user}:{word}@{at.folder}/{at.database}": word,
        f"postgresql://{at.user}:{word}@{at.host}?connect_timeout=3": word,
        f"postgresql://{at.host}/{at.database}?user={at.user}&password={word}&connect_timeout=3": word,
        f"postgresql://{at.host}/{at.database}?password={word}&": word,
        f"postgresql://{at.host}?password={word}": word,
        f"postgresql:///?host={at.host}&password={word}": word,
        f"postgresql://{at.host}/{at.database}?pass%77ord={word}": word,
        f"postgresql://{at.host}/{at.database}?password=a+{word}%26c": f"a+{word}&c",
        f"postgresql://{at.user}:old@{at.host}/{at.database}?password={word}": word,
        f"postgresql://{at.host}/{at.database}?ssl=true&password={word}": word,
    }


WITH_PASSWORD = with_password(Places(), CANARY)
"""Text by text the password that libpq takes."""

REFUSED = (
    f"host=db password='{CANARY}",
    f"host=db sslpassword={CANARY}",
    f"host=db password={CANARY} more",
    f"host=db PASSWORD={CANARY}",
    f"host=db passwd={CANARY}",
    f"host=db pwd={CANARY} user=me",
    f"host=db pasword='{CANARY}'",
    f"host=db p\u00e4ssword={CANARY}",
    f"host=db password='a\nb{CANARY}'",
    f"host=db password=a\0{CANARY}",
    f"host=db application_name='password={CANARY}'",
    f"host=db servicefile=/x password={CANARY}",
    f"db password={CANARY}",
    f"host=db password='{CANARY}'user=me",
    f"{CANARY}/x",
    f"postgresql://me:p@{CANARY}@db/app",
    f"postgresql://me:p/{CANARY}@db/app",
    f"postgresql://me:p?{CANARY}@db/app",
    f"postgresql://me:p#{CANARY}@db/app",
    f"postgresql://me:p%{CANARY}@db/app",
    f"postgresql://me:%00{CANARY}@db/app",
    f"postgresql://me:%0A{CANARY}@db/app",
    f"postgresql://me:{CANARY}\t@db/app",
    f"postgresql://me:a {CANARY}@db/app",
    f"postgresql://me:{CANARY}\n@db/app",
    f"postgresql://db:{CANARY}",
    f"postgresql://db?user=me:{CANARY}@x",
    f"postgresql://password={CANARY}@db",
    f"postgresql://[::1{CANARY}",
    f"postgresql://db/app?{CANARY}",
    f"postgresql://db/app?password={CANARY}=x",
    f"postgresql://db/app?passwd={CANARY}",
    f"postgresql://db/app?ssl=false&password={CANARY}",
    f"postgresql://db/app?a=b&&password={CANARY}",
    f"postgresql://me:{CANARY}@db/app password=x",
    f"POSTGRESQL://me:{CANARY}@db/app",
    f"Postgres://db/app?password={CANARY}",
    f"postgre://me:{CANARY}@db/app",
    f"jdbc:postgresql://db/app?user=me&password={CANARY}",
)
"""What libpq refuses, or what people and programs would read otherwise than it does."""
