package kubectlrun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// running is held while a command runs: kubectl has one BehaviorOnFatal for the process.
var running sync.Mutex

// Kubectl is where kubectl goes.
type Kubectl struct {
	Config    *rest.Config
	Namespace string
	// Dir is for what kubectl caches.
	Dir string
}

// Run runs kubectl with arguments, and returns what it printed on standard output and error. The error is a Failure if kubectl itself would
// have exited.
func (k *Kubectl) Run(ctx context.Context, args ...string) (out, errOut string, err error) {
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr}
	flags, err := k.flags(streams)
	if err != nil {
		return "", "", err
	}
	running.Lock()
	defer running.Unlock()
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(Failure{code, strings.TrimSpace(message)}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{ConfigFlags: flags, IOStreams: streams})
	command.SetArgs(args)
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SilenceUsage, command.SilenceErrors = true, true
	err = execute(func() error { return command.ExecuteContext(ctx) })
	return stdout.String(), stderr.String(), err
}

// Failure is how kubectl ends in place of exiting.
type Failure struct {
	Code int
	// Message is the last that it says.
	Message string
}

// Error implements error.
func (f Failure) Error() string { return fmt.Sprintf("exit code %d: %s", f.Code, f.Message) }

// execute returns the failure with which kubectl would have exited.
func execute(run func() error) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case Failure:
			err = end
		default:
			panic(end)
		}
	}()
	return run()
}

// flags lead to the cluster, whatever kubeconfig this process has.
func (k *Kubectl) flags(streams genericiooptions.IOStreams) (*genericclioptions.ConfigFlags, error) {
	kubeconfig := filepath.Join(k.Dir, "kubeconfig") // empty: kubectl wants to see one
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		return nil, err
	}
	flags := genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams).WithDiscoveryQPS(-1)
	flags.KubeConfig, flags.CacheDir, flags.APIServer, flags.Namespace = &kubeconfig, &k.Dir, &k.Config.Host, &k.Namespace
	flags.WrapConfigFn = func(asked *rest.Config) *rest.Config {
		inside := rest.CopyConfig(k.Config)
		inside.Impersonate, inside.Timeout, inside.UserAgent = asked.Impersonate, asked.Timeout, rest.DefaultKubernetesUserAgent()
		inside.WarningHandler = nil
		return inside
	}
	return flags, nil
}
