// Package compose checks the cluster of docker-compose.yml from outside: what
// kubectl's user sees when a server or an agent is killed, paused or restarted.
//
// It owns no code of the product and imports none: only client-go, the
// kubeconfig in .compose and the docker command. `make compose-up` must have run
// (test/run.sh does both). Build tag: compose. COMPOSE_KILLS sets how often the
// leader is killed.
package compose
