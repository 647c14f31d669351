package kubectl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// running is held while a command runs: kubectl has one BehaviorOnFatal for the process.
var running sync.Mutex

// Run runs kubectl with arguments and returns what it printed. It fails the test if kubectl fails.
func Run(t testing.TB, c *setpointtest.Cluster, args ...string) string {
	t.Helper()
	out, errOut, err := Try(t, c, args...)
	if err != nil {
		t.Fatalf("setpointtest: kubectl %s: %v\n%s", strings.Join(args, " "), err, errOut)
	}
	return out
}

// Try is Run that returns what kubectl printed on standard error, and how it failed.
func Try(t testing.TB, c *setpointtest.Cluster, args ...string) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr}
	running.Lock()
	defer running.Unlock()
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(failure{message, code}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{ConfigFlags: flags(t, c, streams), IOStreams: streams})
	command.SetArgs(args)
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SilenceUsage, command.SilenceErrors = true, true
	err = execute(func() error { return command.ExecuteContext(t.Context()) })
	return stdout.String(), stderr.String(), err
}

// failure is how kubectl ends in place of exiting.
type failure struct {
	message string
	code    int
}

func (f failure) Error() string {
	return fmt.Sprintf("exit code %d: %s", f.code, strings.TrimSpace(f.message))
}

// execute returns the failure with which kubectl would have exited.
func execute(run func() error) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case failure:
			err = end
		default:
			panic(end)
		}
	}()
	return run()
}

// flags lead to the cluster, whatever kubeconfig this process has.
func flags(t testing.TB, c *setpointtest.Cluster, streams genericiooptions.IOStreams) *genericclioptions.ConfigFlags {
	t.Helper()
	config, dir, namespace := c.RESTConfig(), t.TempDir(), c.Namespace()
	kubeconfig := filepath.Join(dir, "kubeconfig") // empty: kubectl wants to see one
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatalf("setpointtest: kubectl: %v", err)
	}
	flags := genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams).WithDiscoveryQPS(-1)
	flags.KubeConfig, flags.CacheDir, flags.APIServer, flags.Namespace = &kubeconfig, &dir, &config.Host, &namespace
	flags.WrapConfigFn = func(asked *rest.Config) *rest.Config {
		inside := rest.CopyConfig(config)
		inside.Impersonate, inside.Timeout, inside.UserAgent = asked.Impersonate, asked.Timeout, rest.DefaultKubernetesUserAgent()
		inside.WarningHandler = nil
		return inside
	}
	return flags
}
