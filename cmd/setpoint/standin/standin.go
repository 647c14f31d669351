package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// The programs that envtest calls.
const (
	Etcd      = "etcd"
	APIServer = "kube-apiserver"
	Kubectl   = "kubectl"
)

// parentInterval is how often it is looked whether the parent is still there.
const parentInterval = time.Second

// Called is the program as which a process was called, by its first argument; "" if it is setpoint itself.
func Called(arg0 string) string {
	if name := strings.TrimSuffix(filepath.Base(arg0), ".exe"); name == Etcd || name == APIServer || name == Kubectl {
		return name
	}
	return ""
}

// Link makes the folder of links to the executable, for KUBEBUILDER_ASSETS.
func Link(dir, executable string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{Etcd, APIServer, Kubectl} {
		link := filepath.Join(dir, name)
		if to, err := os.Readlink(link); err == nil && to == executable {
			continue
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Symlink(executable, link); err != nil {
			return err
		}
	}
	return nil
}

// Run is etcd or kube-apiserver, until ctx or the parent ends.
func Run(ctx context.Context, name string, args []string, out, errOut io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go endWithParent(ctx, cancel, os.Getppid())
	if name == Etcd {
		return runEtcd(ctx, args, out, errOut)
	}
	return runAPIServer(ctx, args, out, errOut)
}

// endWithParent ends a process that a test left behind: another parent takes it over then.
func endWithParent(ctx context.Context, cancel context.CancelFunc, parent int) {
	tick := time.NewTicker(parentInterval)
	defer tick.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	cancel()
}

// noEffect begins the description of a flag that nothing comes of.
const noEffect = "no effect: "

// parse reads the flags that are known. Others, which the programs have and this has not, are named and left out. Those
// that nothing comes of are named with the reason. help: only the flags were asked for.
func parse(flags *pflag.FlagSet, args []string, out, errOut io.Writer) (help bool, err error) {
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprintf(out, "Usage of %s, which setpoint stands in for:\n%s", flags.Name(), flags.FlagUsages())
	}
	known, unknown := split(flags, args)
	for _, name := range unknown {
		fmt.Fprintf(errOut, "Warning: %s: setpoint has no --%s: it has no effect\n", flags.Name(), name)
	}
	if err := flags.Parse(known); err != nil {
		return errors.Is(err, pflag.ErrHelp), ignoreHelp(err)
	}
	flags.Visit(func(f *pflag.Flag) {
		if why, idle := strings.CutPrefix(f.Usage, noEffect); idle {
			fmt.Fprintf(errOut, "Warning: %s: --%s=%s has no effect: %s\n", flags.Name(), f.Name, f.Value, why)
		}
	})
	return false, nil
}

func ignoreHelp(err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	return err
}

// split tells the arguments whose flags are known from the names of the others. envtest writes --name=value.
func split(flags *pflag.FlagSet, args []string) (known, unknown []string) {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || name == "help" || name == "h" || flags.Lookup(name) != nil {
			known = append(known, arg)
		} else if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return known, unknown
}
