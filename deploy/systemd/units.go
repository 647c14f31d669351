package systemd

import _ "embed"

// ServerWrites is what the unit of a server lets it write of what is else read-only to it.
const ServerWrites = "-/etc/setpoint"

// Server and Agent are the units of these names.
//
//go:embed setpoint-server.service
var Server string

//go:embed setpoint-agent.service
var Agent string
