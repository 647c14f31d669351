package upkeep

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

func TestMain(m *testing.M) { networktest.Main(m) }

// TestTheKernelTells of tables, and of settings that packets need.
func TestTheKernelTells(t *testing.T) {
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
	const long = 20 * time.Second
	woken := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Notifications(slog.New(slog.NewTextHandler(t.Output(), nil)))(ctx, func() { woken <- struct{}{} })
	}()
	told := func(what string) {
		t.Helper()
		select {
		case <-woken:
		case <-time.After(long):
			t.Fatalf("nobody tells of %s", what)
		}
	}
	told("the first family")
	told("the second")
	for what, change := range map[string]func() error{
		"a table": func() error {
			conn, err := nftables.New()
			if err != nil {
				return err
			}
			table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "told"})
			t.Cleanup(func() { conn.DelTable(table); _ = conn.Flush() })
			return conn.Flush()
		},
		"forwarding": func() error { return turn("/proc/sys/net/ipv4/ip_forward") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		told(what)
		for len(woken) > 0 {
			<-woken
		}
	}
	cancel()
	<-ended
}

// turn changes a setting that is on or off.
func turn(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte{data[0] ^ 1}, 0)
}
