package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/setpoint-io/setpoint/agent/resources/claims/claimstest"
	"github.com/setpoint-io/setpoint/agent/resources/devices/devicestest"
)

// registrationTime is how long an agent may take to let a plugin register.
const registrationTime = 20 * time.Second

// devicePlugin has a plugin of example.com/dongle register with the agent of a data directory. t ends it.
func devicePlugin(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	count := 0
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 {
			ts.Fatalf("usage: device-plugin DATA ID...")
		}
		dir := filepath.Join(ts.MkAbs(args[0]), "device-plugins")
		p := devicestest.New("example.com/dongle", args[1:]...)
		p.Response = func(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
			return &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"DONGLES": strings.Join(ids, ",")}}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), registrationTime)
		defer cancel()
		for gone := true; gone; { // an agent that starts removes sockets, and plugins open others
			count++
			name := fmt.Sprintf("%d.sock", count)
			p.Serve(t, dir, name)
			ts.Check(p.Register(ctx, dir, name))
			_, err := os.Stat(filepath.Join(dir, name))
			gone = err != nil
		}
	}
}

// draDriver opens the socket of a driver dev.example.com in a data directory, until t ends. It prepares devices that need nothing
// from the runtime.
func draDriver(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: dra-driver DATA")
		}
		d := &claimstest.Driver{Name: "dev.example.com", Device: func(*draapi.Claim) *draapi.Device {
			return &draapi.Device{PoolName: "pool", DeviceName: "mine"}
		}}
		d.ServeAt(t, filepath.Join(ts.MkAbs(args[0]), "plugins_registry", "dra.sock"))
	}
}
