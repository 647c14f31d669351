# Read by compose-up.sh and compose-down.sh: what a cluster of docker-compose.yml has of its own.
#   PREFIX=two-            before the names of its containers; its files are in .compose-two, its project is setpoint-two
#   PORTS=7441,7442,7443   of 127.0.0.1, one for each server
name=${PREFIX:-}
name=${name%-}
if [[ -n $name && ! $name =~ ^[a-z0-9][a-z0-9-]*$ ]]; then
  echo "PREFIX is small letters, digits and hyphens: $PREFIX" >&2
  exit 2
fi
IFS=, read -r SETPOINT_PORT_1 SETPOINT_PORT_2 SETPOINT_PORT_3 rest <<<"${PORTS:-6441,6442,6443}"
if [[ -z $SETPOINT_PORT_3 || -n ${rest:-} ]]; then
  echo "PORTS are three, with commas between them: $PORTS" >&2
  exit 2
fi
folder=.compose${name:+-$name}
SETPOINT_PREFIX=${name:+$name-} SETPOINT_FOLDER=./$folder
if [[ -n $name ]]; then
  export COMPOSE_PROJECT_NAME=setpoint-$name
fi
export SETPOINT_PREFIX SETPOINT_FOLDER SETPOINT_PORT_1 SETPOINT_PORT_2 SETPOINT_PORT_3
