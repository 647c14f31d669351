package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// options are what the flags of go test say.
type options struct {
	goTest []string // for go test, as they came, but for -p
	build  []string // for go build
	run    []string // for a program of tests
	exec   []string // a command before each program
	race   []string // -race, for go list
	atOnce int      // -p
	// timeout is the programs' own; ioGrace is how long what a program has started may hold its output open once its tests have ended, as
	// with go test.
	timeout, ioGrace time.Duration
}

const (
	// timeoutUsual is that of go test, and ioGraceUsual its wait for output.
	timeoutUsual, ioGraceUsual = 10 * time.Minute, time.Minute
)

// parse understands the flags that test/run.sh gives.
func parse(flags []string) (options, error) {
	o := options{atOnce: 1, timeout: timeoutUsual, ioGrace: ioGraceUsual}
	for i := 0; i < len(flags); i++ {
		name, value, joined := strings.Cut(strings.TrimLeft(flags[i], "-"), "=")
		if takesValue(name) && !joined {
			if i++; i == len(flags) {
				return options{}, fmt.Errorf("-%s has no value", name)
			}
			value = flags[i]
		}
		if err := o.take(name, value); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

func takesValue(name string) bool { return name != "short" && name != "race" }

func (o *options) take(name, value string) (err error) {
	flag := "-" + name
	if takesValue(name) {
		flag += "=" + value
	}
	switch name {
	case "p":
		o.atOnce, err = strconv.Atoi(value)
		return err
	case "race":
		o.build, o.race = append(o.build, flag), []string{flag}
	case "ldflags":
		o.build = append(o.build, flag)
	case "timeout":
		o.timeout, err = time.ParseDuration(value)
		o.run = append(o.run, "-test."+strings.TrimPrefix(flag, "-"))
	case "short", "count":
		o.run = append(o.run, "-test."+strings.TrimPrefix(flag, "-"))
	case "exec":
		o.exec = strings.Fields(value)
	case "vet":
	default:
		return fmt.Errorf("-%s is not understood here", name)
	}
	o.goTest = append(o.goTest, flag)
	return err
}
