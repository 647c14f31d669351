// Command setpoint is the whole control plane, the node agent and their client
// in one binary.
//
// It owns flags, signals and exit codes (0 done, 1 failed while running, 2 wrong
// usage, 65 for data that somebody has to decide about), and what commands print. What can be judged without the binary is in the
// packages that it calls. The script tests in testdata/script drive the real binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/net/network/wireguard"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded"
	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/cmd/setpoint/man"
	"github.com/setpoint-io/setpoint/cmd/setpoint/standin"
	"github.com/setpoint-io/setpoint/cmd/setpoint/undelete"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/process/startup"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	startup.Done(os.Args)  // before the helpers below, which live for long
	embedded.ReexecMain()  // does not return in a pod's shim or init
	wireguard.ReexecMain() // does not return in the process of a WireGuard device
	machine.Init()         // does not return in the first process of a container
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch name := standin.Called(os.Args[0]); name {
	case "":
	case standin.Kubectl:
		os.Args = append([]string{"setpoint", name}, os.Args[1:]...)
		args = os.Args[1:]
	default:
		return runAs(ctx, name)
	}
	err := execute(ctx, args)
	if err == nil || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return 0 // done, or ended as asked
	}
	if expired, ok := errors.AsType[kubeconfig.ExpiredError](err); ok {
		err = expired // one sentence for all servers
	}
	fmt.Fprintln(os.Stderr, paint(os.Stderr, red, "setpoint:"), err)
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.As(err, new(process.InDoubt)):
		return process.ExitInDoubt
	}
	return exitFailed
}

// execute goes to kubectl straight away: the other commands take 2 ms to make, and all flags are kubectl's own.
func execute(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == standin.Kubectl {
		return runKubectl(args[1:])
	}
	root := newRoot()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "setpoint",
		Short:         "A Kubernetes-compatible control plane in one binary",
		Version:       fmt.Sprintf("%s (Kubernetes %s)", setpoint.Version, setpoint.KubernetesVersion),
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{suggestFlag(cmd, err)} })
	root.SetHelpFunc(showHelp)
	root.SetUsageFunc(func(cmd *cobra.Command) error { printUsage(cmd.OutOrStderr(), cmd); return nil })
	root.SetHelpCommand(newHelp())
	group(root, reachesTheWeb(newDev()), reachesTheWeb(newServer()), reachesTheWeb(newAgent()), reachesTheWeb(newCRI()),
		newImages(), newCluster(), newNode(), newNet(), newUI(), newLoops(), newWhy(), newWhatIf(),
		pastShell().History(), pastShell().Diff(), undelete.New(pastShell()), newAt(), newToken(), newRevoke(),
		newRotate(), newBackup(), newUpgrade(),
		newKubectl(), newKubeconfig(), newEnvtestAssets(), newTestServer(), newDemo(), newReset(),
		newInstall(), newUninstall(), man.New(withSources, func(err error) error { return usageError{err} }), newVersion())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		group(completion)
	}
	return root
}
