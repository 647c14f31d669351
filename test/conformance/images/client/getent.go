package main

import (
	"errors"
	"fmt"
	"net"
)

// exitNotFound is getent's exit code for a key that is not there.
const exitNotFound = 2

// getent looks for hosts in /etc/hosts, and asks DNS for those that are not there.
func getent(args []string) (code int, err error) {
	if len(args) < 2 || args[0] != "hosts" {
		return 1, errors.New("want hosts and a name")
	}
	for _, name := range args[1:] {
		addresses, err := net.LookupHost(name)
		if err != nil {
			return exitNotFound, err
		}
		for _, address := range addresses {
			fmt.Printf("%-15s %s\n", address, name)
		}
	}
	return 0, nil
}
