package main

import (
	"path/filepath"
	"slices"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

// csiKey leads to the CSI driver of a script.
type csiKey struct{}

// csiDriver has a driver "folders", whose volume is a folder, register with the agent of a data directory. t ends it.
func csiDriver(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: csi-driver DATA FOLDER")
		}
		d := ts.Value(csiKey{}).(*csitest.Driver)
		d.Name, d.Mount = "folders", csitest.Folder(ts.MkAbs(args[1]))
		d.Capabilities = []spec.NodeServiceCapability_RPC_Type{
			spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, spec.NodeServiceCapability_RPC_EXPAND_VOLUME}
		csitest.NewRegistrar(d.Name, d.Serve(t)).Serve(t, filepath.Join(ts.MkAbs(args[0]), "plugins_registry", "folders.sock"))
	}
}

// csiCalls compares what the driver was asked for since the last time with the arguments.
func csiCalls(ts *testscript.TestScript, neg bool, args []string) {
	calls := ts.Value(csiKey{}).(*csitest.Driver).Calls()
	if neg || !slices.Equal(calls, args) {
		ts.Fatalf("the driver was asked %q, want %q", calls, args)
	}
}
