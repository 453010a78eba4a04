#!/usr/bin/env bash
# Three instances of the service behind two of the real HAProxy and the real nginx, with the configurations beside this file:
# loads them, rolls one instance after the other, changes a controller, kills one instance with SIGKILL, and counts lost
# requests. None may be lost, but for what the killed one was answering to a method that may not be repeated. At the end one
# address floods both HAProxys, which have to hold the limit of their stick tables together. Where root finds a PostgreSQL of
# Debian, the instances share it: a key that one of them accepts is good on all, and a revoked one on none.
# Takes about a minute; exit 1 when a request was lost that may not be, 2 when it cannot run here.
#
#   npm run build && deploy/try.sh
#
# Needs Linux, bash, node, haproxy and nginx (Debian: apt-get install haproxy nginx-light). Runs in a network namespace of
# its own where it may make one, else on loopback ports from TRY_PORT (23000) on.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
server=$here/../dist/server.js

for program in node haproxy nginx setsid; do
  command -v "$program" >/dev/null || { echo "Cannot run: there is no $program" >&2; exit 2; }
done
[ -f "$server" ] || { echo 'Cannot run: there is no dist/server.js; npm run build makes it' >&2; exit 2; }

if [ -z "${TRY_NETWORK:-}" ]; then
  if command -v ip >/dev/null && unshare --net true 2>/dev/null; then TRY_NETWORK=namespace exec unshare --net "$0" "$@"
  elif command -v ip >/dev/null && unshare --map-root-user --net true 2>/dev/null; then
    TRY_NETWORK=namespace exec unshare --map-root-user --net "$0" "$@"
  else TRY_NETWORK=loopback
  fi
fi
if [ "$TRY_NETWORK" = namespace ]; then
  # The addresses and ports of the configurations, as they stand.
  net=10.0.0 port=3000 ops=3001 haproxy_at=10.0.0.1:80 nginx_at=10.0.0.2:80 second_at=10.0.0.3:80
  peers=10000 other_peers=10000 peer_net=10.0.0 second_peer=10.0.0.3 own=10.0.0.0/24 flooder=192.0.2.99
  ip link set lo up
  ip address add 192.0.2.99/32 dev lo
  for last in 1 2 3 11 12 13; do ip address add "$net.$last/32" dev lo; done
else
  base=${TRY_PORT:-23000}
  net=127.0.0 port=$base ops=$((base + 1)) haproxy_at=127.0.0.1:$((base + 2)) nginx_at=127.0.0.1:$((base + 3)) second_at=127.0.0.1:$((base + 4))
  peers=$((base + 5)) other_peers=$((base + 6)) peer_net=127.0.0 second_peer=127.0.0.1 own=127.0.0.1 flooder=127.0.0.99
fi

work=$(mktemp -d)
declare -A pids=()
client=
cleanup() {
  local status=$?
  trap - EXIT
  exec 3>&- 2>/dev/null || true
  for name in "${!pids[@]}"; do kill -KILL -- "-${pids[$name]}" 2>/dev/null || true; done
  [ -z "$client" ] || kill -KILL "$client" 2>/dev/null || true
  wait 2>/dev/null || true
  if [ $status -ne 0 ] && [ -n "${TRY_KEEP:-}" ]; then echo "What was written is in $work" >&2; else rm -rf "$work"; fi
  exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Each in a process group of its own, so that all of it can be ended.
start() { # name command…
  local name=$1; shift
  setsid "$@" </dev/null >>"$work/$name.log" 2>&1 3>&- &
  pids[$name]=$!
}

# A PostgreSQL that the instances share. Without one, they share the folder of the tables.
store=
start_store() {
  local bin='' port=55432
  for bin in /usr/lib/postgresql/*/bin; do :; done
  [ -x "$bin/initdb" ] && [ "$(id -u)" = 0 ] && id postgres >/dev/null 2>&1 && runuser -u postgres true 2>/dev/null || return 0
  install -d -o postgres -m 700 "$work/postgres"
  (cd / && runuser -u postgres -- "$bin/initdb" -D "$work/postgres" --auth=trust --locale=C >/dev/null 2>&1) || return 0
  [ "$TRY_NETWORK" = namespace ] || port=$((base + 7))
  start postgres runuser -u postgres -- "$bin/postgres" -D "$work/postgres" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
  export STORE=postgres://postgres@127.0.0.1:$port/postgres
  # It tries for ten seconds.
  node "$here/../dist/cli.js" store init >/dev/null || { echo 'The store does not start:' >&2; tail -n 5 "$work/postgres.log" >&2; exit 2; }
  store=yes
}

declare -A last=([a]=11 [b]=12 [c]=13)
start_instance() {
  start "$1" env HOST="$net.${last[$1]}" PORT="$port" OPS_HOST="$net.${last[$1]}" OPS_PORT="$ops" WORKERS=2 LOG_LEVEL=warn \
    CONTROLLERS_DIR="$work/controllers" DATA_DIR="$work/data${store:+-$1}" TRY_INSTANCE="$1" node "$server"
}
ask() { node "$here/try-client.mjs" get "$@"; }
until_ready() {
  local tries
  for tries in $(seq 60); do
    kill -0 "${pids[$1]}" 2>/dev/null || { echo "Instance $1 ended:" >&2; tail -n 5 "$work/$1.log" >&2; exit 2; }
    ask "http://$net.${last[$1]}:$ops/readyz" >/dev/null && return
    sleep 0.2
  done
  echo "Instance $1 does not get ready:" >&2; tail -n 5 "$work/$1.log" >&2; exit 2
}

# In one piece: readers see the old file or the new one.
write_controller() {
  cat >"$work/TryController.tmp" <<CONTROLLER
const about = (nonce) => ({ nonce, instance: process.env.TRY_INSTANCE, version: $1, filling: 'y'.repeat(500) });
const pause = () => new Promise((resolve) => setTimeout(resolve, 400));
export default class TryController {
  index(data) { return about(data.nonce); }
  created(data) { return about(data.nonce); }
  async slow(data) { await pause(); return about(data.nonce); }
}
CONTROLLER
  mv "$work/TryController.tmp" "$work/controllers/TryController.mjs"
}

chmod 755 "$work"
mkdir "$work/controllers" "$work/data" "$work/nginx" "$work/data-a" "$work/data-b" "$work/data-c"
write_controller 1

# The configurations as they are, but for addresses, and for files that belong to the system's own HAProxy and nginx.
machines="s/10\\.0\\.0\\.(1[123]):3000/$net.\\1:$port/; s/check port 3001/check port $ops/"
system=''
[ "$(id -u)" = 0 ] && [ "$(wc -l </proc/self/uid_map)" = 1 ] && grep -q 4294967295 /proc/self/uid_map || system='/^ *(user|group|chroot) /d'
machines+="; s/10\\.0\\.0\\.1:10000/$peer_net.1:$peers/; s/10\\.0\\.0\\.3:10000/$second_peer:$other_peers/; s#10\\.0\\.0\\.0/24#$own#"
sed -E "$machines; s/bind :80/bind $haproxy_at/; s#/run/haproxy/#$work/#; s#log /dev/log local0#log stdout format raw local0#; $system" \
  "$here/haproxy.cfg" >"$work/haproxy.cfg"
sed -E "s/bind $haproxy_at/bind $second_at/; s#admin.sock#second.sock#; s/localpeer balancer1/localpeer balancer2/" "$work/haproxy.cfg" >"$work/second.cfg"
temporary=''
for kind in client_body proxy fastcgi uwsgi scgi; do temporary+="${kind}_temp_path $work/nginx/$kind; "; done
sed -E "$machines; s/listen 80 /listen $nginx_at /; s#/run/nginx.pid#$work/nginx/pid#; s#/var/log/nginx/#$work/nginx/#; s#^http \\{#http { $temporary#; $system" \
  "$here/nginx.conf" >"$work/nginx.conf"

echo "Three instances behind HAProxy ($haproxy_at) and nginx ($nginx_at), network: $TRY_NETWORK"
start_store
echo "Keys and rates: ${STORE:-the folder that all instances share}"
for name in a b c; do start_instance "$name"; done
for name in a b c; do until_ready "$name"; done
start haproxy haproxy -db -f "$work/haproxy.cfg"
start second haproxy -db -f "$work/second.cfg"
start nginx nginx -c "$work/nginx.conf" -p "$work/nginx/" -e "$work/nginx/error.log" -g 'daemon off;'
for at in "$haproxy_at" "$second_at" "$nginx_at"; do
  for tries in $(seq 25); do ask "http://$at/api/try" >/dev/null && break; sleep 0.2; done
  ask "http://$at/api/try" >/dev/null || { echo "No proxy answers at $at:" >&2; tail -n 5 "$work"/{haproxy,nginx}.log >&2; exit 2; }
done

mkfifo "$work/phases"
node "$here/try-client.mjs" load "haproxy=$haproxy_at" "nginx=$nginx_at" <"$work/phases" >"$work/report" &
client=$!
exec 3>"$work/phases"
tell() { echo "$*" >&3; echo "  $*"; }

tell phase steady
sleep 3
for name in a b c; do
  tell phase "roll $name"
  kill -TERM "${pids[$name]}"
  wait "${pids[$name]}" || { echo "Instance $name did not drain: exit $?" >&2; exit 1; }
  start_instance "$name"
  until_ready "$name"
  # More than nginx leaves a machine alone for (fail_timeout), and than HAProxy needs to see it again.
  sleep 3
done

tell phase change
write_controller 2
sleep 3
for name in a b c; do
  ask "http://$net.${last[$name]}:$port/api/try" | grep -q '"version":2' || { echo "Instance $name has not taken the change" >&2; exit 1; }
done

tell kill 'kill a'
kill -KILL -- "-${pids[a]}"
wait "${pids[a]}" 2>/dev/null || true
sleep 4
tell phase 'a is back'
start_instance a
until_ready a
sleep 4

exec 3>&-
status=0
wait "$client" || status=$?
cat "$work/report"
if [ -n "$store" ]; then
  # The answers of all three to one key, as soon as the command has ended.
  answers() { for name in a b c; do TOKEN=$1 node -e 'fetch(process.argv[1], { headers: { authorization: `Bearer ${process.env.TOKEN}` } }).then(({ status }) => console.log(status))' "http://$net.${last[$name]}:$port/api/try"; done | xargs; }
  issued=$(node "$here/../dist/cli.js" credentials issue --name try --groups '*' --json)
  field() { node -p "JSON.parse(process.argv[1]).$1" "$issued"; }
  before=$(answers "$(field token)")
  node "$here/../dist/cli.js" credentials revoke "$(field id)" >/dev/null
  after=$(answers "$(field token)")
  echo "a new key on all three: $before; when it is revoked: $after"
  [ "$before/$after" = '200 200 200/401 401 401' ] || status=1
fi
# 1,000 in 10 seconds over both; what the two do not know of each other yet may pass.
node "$here/try-client.mjs" flood "$flooder" 1600 1000 "$haproxy_at" "$second_at" || status=1
exit "$status"
