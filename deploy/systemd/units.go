package systemd

import _ "embed"

// Server and Agent are the units of these names.
//
//go:embed setpoint-server.service
var Server string

//go:embed setpoint-agent.service
var Agent string
