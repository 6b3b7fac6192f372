"""A source of PostgreSQL that is built in a moment: it knows its prefix and is installed below DESTDIR."""

CONFIGURE = """#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#--prefix=};; CC=*|CFLAGS=*) how="$how $word";; esac; done
echo "configured with$how" > how
echo "prefix=$prefix" > src/Makefile.global
"""
COMPILER = '#!/bin/sh\necho "cc ${0##*/} 12.2.0"\n'


def makefile(file):
    """Installs the folder `bin` and a file of the source."""
    return f"""include src/Makefile.global
all:
\t@echo compiled
install:
\tmkdir -p $(DESTDIR)$(prefix)/share && cp -r bin $(DESTDIR)$(prefix)/ && cp {file} $(DESTDIR)$(prefix)/share/
\techo bki > $(DESTDIR)$(prefix)/share/postgres.bki
"""


def write_source(folder):
    """All that a build looks for but the Makefile."""
    for name in ("src/backend/parser", "contrib/pg_prewarm"):
        (folder / name).mkdir(parents=True)
    write_program(folder / "configure", CONFIGURE)
    (folder / "contrib/pg_prewarm/Makefile").write_text("all install:\n\t@true\n")
    (folder / "src/backend/parser/gram.c").write_text("/* made by bison */")


def write_program(path, text=COMPILER):
    """A script that can be run, by default a compiler that says its version; its path."""
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
