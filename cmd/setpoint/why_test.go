package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/apiserver/explain"
)

// asTold runs the first command of an answer, in a shell in which kubectl is the one built in.
func asTold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: as-told KIND/NAME [FLAG...]")
	}
	out, err := capture(ts, append([]string{"why", "-o", "json"}, args...))
	ts.Check(err)
	var answer explain.Answer
	ts.Check(json.Unmarshal([]byte(out), &answer))
	command := firstCommand(answer.Causes)
	if command == "" {
		ts.Fatalf("as-told: there is no command in\n%s", out)
	}
	bin := ts.MkAbs(".kubectl")
	ts.Check(os.MkdirAll(bin, 0o755))
	ts.Check(os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\nexec setpoint kubectl \"$@\"\n"), 0o755))
	ts.Logf("$ %s", command)
	ts.Check(ts.Exec("sh", "-c", "PATH="+bin+":$PATH; "+command))
}

func firstCommand(causes []explain.Cause) string {
	for _, c := range causes {
		if c.Command != "" {
			return c.Command
		}
		if command := firstCommand(c.Causes); command != "" {
			return command
		}
	}
	return ""
}
