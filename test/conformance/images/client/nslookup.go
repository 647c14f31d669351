package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/miekg/dns"
)

// nslookup prints the addresses of a name, which it looks for along the search path of resolv.conf.
func nslookup(args []string) (code int, err error) {
	if len(args) != 1 {
		return 1, errors.New("want one name")
	}
	config, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return 1, err
	}
	if err := printAddresses(os.Stdout, config, args[0]); err != nil {
		return 1, err
	}
	return 0, nil
}

// printAddresses fails if there is none of either family.
func printAddresses(out io.Writer, config *dns.ClientConfig, name string) error {
	found := false
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		answer, err := question{name: name, kind: kind, search: true}.ask(config)
		if err != nil {
			return err
		}
		for _, record := range answer.Answer {
			switch r := record.(type) {
			case *dns.A:
				fmt.Fprintf(out, "Name:\t%s\nAddress: %s\n", r.Hdr.Name, r.A)
			case *dns.AAAA:
				fmt.Fprintf(out, "Name:\t%s\nAddress: %s\n", r.Hdr.Name, r.AAAA)
			default:
				continue
			}
			found = true
		}
	}
	if !found {
		return fmt.Errorf("can't find %s: no address", name)
	}
	return nil
}
