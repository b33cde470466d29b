# What the shell of a page begins with.

ip link set lo up
ulimit -n 65536 2> /dev/null || true

# A pseudo-terminal, which `script` holds: programs print what a reader sees.
terminal() {
    local size="stty cols 100 rows 50 -onlcr -echo"
    script --quiet --flush --command "$size; tty > $OWN/$1.tty; exec sleep infinity" "$OWN/$1.log" < /dev/null > /dev/null &
    until [ -s "$OWN/$1.tty" ]; do sleep 0.02; done
}

listening() { ss -Hltn | wc -l; }

# Runs the block of this name in a separate terminal, and returns when it listens on a port or has ended.
background() {
    terminal "$1"
    local before=$(listening) waits=500
    ( . "$OWN/$1.sh" ) > "$(cat "$OWN/$1.tty")" 2>&1 < /dev/null &
    until [ "$(listening)" -gt "$before" ] || ! kill -0 $! 2> /dev/null || [ $((waits -= 1)) -eq 0 ]; do sleep 0.02; done
}

# For `<!-- setup`: starts a server whose output no page shows, and returns when it listens on a port.
start() {
    local before=$(listening) waits=500
    "$@" > /dev/null 2> "$OWN/started.log" < /dev/null &
    until [ "$(listening)" -gt "$before" ]; do
        kill -0 $! && [ $((waits -= 1)) -gt 0 ] || { cat "$OWN/started.log"; return 1; }
        sleep 0.02
    done
}

# For `<!-- setup`: PostgreSQL on its own port, with its usual socket. `sudo -u postgres psql` works; 127.0.0.1 needs a password.
start_postgres() {
    local programs=$(ls -d /usr/lib/postgresql/*/bin | tail -1) data="$OWN/postgres"
    mkdir -p /run/postgresql
    mount -t tmpfs tmpfs /run/postgresql
    install -d -o postgres "$data"
    chown postgres /run/postgresql
    cd "$data"
    runuser -u postgres -- "$programs/initdb" --auth-local=peer --auth-host=scram-sha-256 --no-sync -D "$data/data" > /dev/null
    cd "$OLDPWD"
    start runuser -u postgres -- "$programs/postgres" -D "$data/data" -k /run/postgresql
    until runuser -u postgres -- psql -qc 'select 1' > /dev/null 2>&1; do sleep 0.1; done
}

# For `<!-- setup`: changes below these folders of the machine, such as `/etc`, are the page's alone and end with it.
private() {
    local layers="$OWN/layers" folder name
    mkdir -p "$layers"
    mount -t tmpfs tmpfs "$layers"
    for folder in "$@"; do
        name="$layers/${folder//\//-}"
        mkdir "$name" "$name-work"
        mount -t overlay overlay -o "lowerdir=$folder,upperdir=$name,workdir=$name-work" "$folder"
    done
}

# A reader isn't root. This shell is.
sudo() {
    if [ "$1" = -u ]; then runuser -u "$2" -- "${@:3}"; else "$@"; fi
}

ended() { printf '\036%s\036' "$1" > "$SCREEN"; }

terminal screen
SCREEN=$(cat "$OWN/screen.tty")
trap 'ended $?; sleep 60' EXIT
set -eo pipefail
ended 0
