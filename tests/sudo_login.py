"""A login as an ordinary user on a host with a real sudo, whose sudoers are a test's."""

NOBODY = 65534
FREE = "ALL ALL=(ALL) NOPASSWD: ALL\n"
# What a login does, with a file in the place of sudoers: -n of mount leaves no trace in /etc/mtab.
_LOGIN = """
mount -n -t tmpfs none /etc/sudoers.d
mount -n --bind "$0" /etc/sudoers
{more}
exec setpriv --reuid={user} --regid={user} --clear-groups \\
env -i "PATH=$1" "SSH_CONNECTION=$SSH_CONNECTION" /bin/sh -c "$2"
"""


def sudo_login(directory, sudoers, path="/usr/bin:/bin", more=""):
    """Return the words before what a login asks for, which make it one of nobody.

    ``directory`` is one that everybody may enter; ``more`` are commands of root before the login.
    """
    file = directory / "sudoers"
    file.write_text(f"Defaults !syslog\n{sudoers}")
    file.chmod(0o440)
    script = _LOGIN.format(user=NOBODY, more=more)
    return ("unshare", "--mount", "sh", "-ec", script, str(file), path)
