package raftstore

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/replica"
)

func TestConfigSaysWhatIsMissing(t *testing.T) {
	alone := Config{Name: "a", DataDir: "/data", Logger: slog.New(slog.DiscardHandler)}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"nothing":             {func(*Config) {}, ""},
		"a name":              {func(c *Config) { c.Name = "" }, "Name is required"},
		"a place":             {func(c *Config) { c.DataDir = "" }, "DataDir is required"},
		"a disk is a place":   {func(c *Config) { c.DataDir, c.Disk = "", replica.Files{Dir: "/data"} }, ""},
		"one server":          {func(c *Config) { c.InitialServers = make([]Server, 1) }, ""},
		"a client for others": {func(c *Config) { c.InitialServers = make([]Server, 2) }, "HTTPClient is required"},
		"several servers": {func(c *Config) {
			c.InitialServers, c.HTTPClient = make([]Server, 2), func(string, string) (*http.Client, string) { return nil, "" }
		}, ""},
		"a logger": {func(c *Config) { c.Logger = nil }, "Logger is required"},
	} {
		t.Run(name, func(t *testing.T) {
			config := alone
			c.change(&config)
			err := config.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
		})
	}
}
