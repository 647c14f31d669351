// Command release makes what a release has beside its binaries: the licences of all that is linked, and an image.
//
//	release notices BINARY... >NOTICES
//	release image BINARY ARCHITECTURE VERSION ARCHIVE
//
// It reads which modules a binary holds from the binary itself, so that nothing linked can be forgotten, and their licences from Go's
// module cache. A module without a licence, or with one that does not let a binary be passed on under Apache 2.0 beside it, ends it with
// an error. The same binary makes the same bytes. Tested with small trees, and with the modules of bin/setpoint.
package main

import (
	"errors"
	"fmt"
	"os"
)

var errUsage = errors.New("usage: release notices BINARY... | release image BINARY ARCHITECTURE VERSION ARCHIVE")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 1 && args[0] == "notices":
		return notices(os.Stdout, args[1:])
	case len(args) == 5 && args[0] == "image":
		return writeImage(args[1], args[2], args[3], args[4])
	}
	return errUsage
}
