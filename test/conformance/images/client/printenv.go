package main

import (
	"fmt"
	"os"
)

// printenv prints the values of variables. It fails if one of them is not there.
func printenv(args []string) (code int, err error) {
	for _, name := range args {
		value, ok := os.LookupEnv(name)
		if !ok {
			code = 1
			continue
		}
		fmt.Println(value)
	}
	return code, nil
}
