package main

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/agent/host"
)

// ingressFlags are where a node serves Ingresses.
func ingressFlags(flags *pflag.FlagSet, p *host.IngressPorts, accessLog *bool) {
	flags.IntVar(&p.HTTP, "ingress-http-port", 80, "port of this node on which Ingresses are served; 0: none")
	flags.IntVar(&p.HTTPS, "ingress-https-port", 443, "the same with TLS; 0: none")
	flags.BoolVar(accessLog, "ingress-access-log", false,
		"write a line of JSON to standard output for each request to the ports of Ingresses and Gateways")
}

// writerIf is nil if nothing is to be written.
func writerIf(on bool, to io.Writer) io.Writer {
	if on {
		return to
	}
	return nil
}
