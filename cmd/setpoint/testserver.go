package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/testserver"
)

// newTestServer is clusters in memory for tests of any language.
func newTestServer() *cobra.Command {
	var socket string
	config := testserver.Config{}
	cmd := &cobra.Command{
		Use:   "testserver",
		Short: "Hold clusters in memory for tests in any language, by HTTP on a Unix socket",
		Long: "Hold clusters in memory for tests in any language, by HTTP on a Unix socket of this user.\n\n" +
			"    GET    /version                        the version of these requests, and of setpoint\n" +
			"    GET    /session                        stays open: what is made for the session ends with the connection\n" +
			"    POST   /clusters                       a cluster; {\"nodes\": 3, \"replicas\": 1, \"apiOnly\": false,\n" +
			"                                           \"loops\": [], \"disabledAdmission\": [], \"session\": \"session-1\"}\n" +
			"    GET    /clusters/C/kubeconfig          opens a port of loopback, once\n" +
			"    POST   /clusters/C/fork                another cluster, from what this one holds\n" +
			"    POST   /clusters/C/marks               remembers what it holds\n" +
			"    POST   /clusters/C/reset/M             takes it back; it has another port, so ask for a kubeconfig again\n" +
			"    POST   /clusters/C/advance/7m          lets time pass for it\n" +
			"    POST   /clusters/C/nodes/sim-1/off     a power cut of a simulated node; on: it is back\n" +
			"    GET    /clusters/C/why/NAMESPACE/KIND/NAME   what holds an object, as setpoint why says\n" +
			"    DELETE /clusters/C                     ends it",
		Example: "  setpoint testserver --socket /tmp/t.sock &\n  curl --unix-socket /tmp/t.sock -X POST http://test/clusters",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&socket, "socket", "", "path of the socket (default: in this user's cache)")
	cmd.Flags().DurationVar(&config.Idle, "idle", testserver.DefaultIdle, "end when there was no session and no request for so long; while it holds clusters, an hour at least")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if config.Idle <= 0 {
			return usageError{fmt.Errorf("--idle must be more than 0, such as 1m")}
		}
		if socket == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return fmt.Errorf("name a socket with --socket: %w", err)
			}
			socket = filepath.Join(cache, "setpoint", "test-"+setpoint.Version+".sock")
		}
		listener, err := testserver.Listen(socket)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Clusters for tests: curl --unix-socket %s -X POST http://test/clusters\n", socket)
		return testserver.Run(cmd.Context(), listener, config)
	}
	return cmd
}
