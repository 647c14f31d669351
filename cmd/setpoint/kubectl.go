package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	_ "github.com/setpoint-io/setpoint/cmd/setpoint/translations" // kubectl's, for its commands alone
)

// kubectl's own limits for reading what a server offers.
const (
	discoveryBurst           = 300
	discoveryRequestsASecond = 50.0
)

// hostWithoutConfiguration is where kubectl goes when nobody has named a server.
const hostWithoutConfiguration = "http://localhost:8080"

var errNoCluster = errors.New("no cluster found: start one with 'setpoint dev', run this as the user who did, " +
	"or name a cluster's kubeconfig with --kubeconfig or $KUBECONFIG")

// newKubectl embeds kubectl. All flags are its own.
func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [command]",
		Short:              "kubectl, built in; finds the cluster of this machine by itself",
		DisableFlagParsing: true,
		ValidArgsFunction:  completeKubectl,
		RunE:               func(*cobra.Command, []string) error { return runKubectl(os.Args[2:]) },
	}
}

// runKubectl runs kubectl in place of this command.
func runKubectl(args []string, change ...func(*rest.Config)) error {
	signal.Reset(os.Interrupt, syscall.SIGTERM) // kubectl ends by itself
	useOwnKubeconfig()
	os.Args = append([]string{"kubectl"}, args...)
	if code := cli.Run(embeddedKubectl(change...)); code != 0 {
		os.Exit(code) // kubectl has said why
	}
	return nil
}

// embeddedKubectl is kubectl as it is, except that it goes to a server that answers, and says in one sentence that
// there is no cluster. What it asks can be changed.
func embeddedKubectl(change ...func(*rest.Config)) *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().
		WithDiscoveryBurst(discoveryBurst).WithDiscoveryQPS(discoveryRequestsASecond).WithWarningPrinter(streams)
	choose := sync.OnceValue(func() *rest.Config { return answeringServer(flags, streams.ErrOut) })
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		if config.Host == hostWithoutConfiguration {
			return withoutCluster(config)
		}
		if other := choose(); other != nil {
			config.Host, config.TLSClientConfig = other.Host, other.TLSClientConfig
		}
		kubeconfig.SayIfExpired(config)
		kubeconfig.SayIfRemoved(config, giveUp) // kubectl would tell it once for each thing that it looks up first
		for _, c := range change {
			c(config)
		}
		return config
	}
	return cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     os.Args, ConfigFlags: flags, IOStreams: streams,
	})
}

// withoutCluster ends kubectl at its first request, if nobody listens there: commands that need no server make none.
func withoutCluster(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return lastResort{next} })
	return config
}

type lastResort struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lastResort) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if errors.Is(err, syscall.ECONNREFUSED) {
		giveUp(errNoCluster)
	}
	return response, err
}

// giveUp ends kubectl with one sentence.
func giveUp(err error) {
	fmt.Fprintln(os.Stderr, "setpoint:", err)
	os.Exit(exitFailed)
}

// useOwnKubeconfig points kubectl at this machine's cluster unless the user has
// chosen one.
func useOwnKubeconfig() {
	if os.Getenv("KUBECONFIG") != "" {
		return
	}
	if path := ownKubeconfig(); exists(path) {
		_ = os.Setenv("KUBECONFIG", path)
	}
}

// ownKubeconfig is the administrator's on this machine: `dev` writes it there, and `server` a link to the trust folder's.
// Where the environment names another data directory, it is looked for there first.
func ownKubeconfig() string {
	if dir := os.Getenv(envName("data-dir")); dir != "" {
		if path := filepath.Join(dir, setpoint.AdminKubeconfig); exists(path) {
			return path
		}
	}
	return filepath.Join(defaultDataDir(), setpoint.AdminKubeconfig)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
