package main

import (
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/agent/host"
)

// ingressFlags are where a node serves Ingresses.
func ingressFlags(flags *pflag.FlagSet, p *host.IngressPorts) {
	flags.IntVar(&p.HTTP, "ingress-http-port", 80, "port of this node on which Ingresses are served; 0: none")
	flags.IntVar(&p.HTTPS, "ingress-https-port", 443, "the same with TLS; 0: none")
}
