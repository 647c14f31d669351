package lessons

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// askTimeout bounds how long one server may take, advanceTimeout how long if it moves the clock, in steps in which all loops act.
	askTimeout     = 30 * time.Second
	advanceTimeout = 10 * time.Minute
)

var (
	errPart      = errors.New("say what: node NAME, server NAME, or pod NAME or NAMESPACE/NAME")
	errNamespace = errors.New("the pod is named with another namespace than that of --namespace")
	errBy        = errors.New("say how far, such as 5m, and at most 1h")
)

// Shell is what all commands share.
type Shell struct {
	KubeconfigUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskServers asks one server after the other, until admin.IsFinal.
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// Namespace is that of the kubeconfig's context.
	Namespace func(kubeconfig string) (string, error)
	// Escaped writes without control characters, Mistake is an error of the command line.
	Escaped func(w io.Writer) io.Writer
	Mistake func(error) error
}

const forWhom = "\n\nThis is for administrators, and for clusters to learn on alone, such as 'setpoint dev' and 'setpoint testserver' run; others refuse."

// Commands are those that stand below `setpoint dev`.
func (s *Shell) Commands() []*cobra.Command {
	return []*cobra.Command{
		s.part(admin.KillLesson, &cobra.Command{
			Use: "kill node|server|pod NAME", Short: "End a simulated node, a server, or a simulated pod's containers",
			Long: "Have a part of a running 'setpoint dev' fail.\n\n" +
				"A simulated node is switched off: it renews its Lease no more, and nothing happens to its pods. A server of several stops: it hands\n" +
				"over what it leads, and stays away. The containers of a simulated pod crash, and crash again at each start; a pod whose\n" +
				"containers are not restarted fails. Nothing is done to pods of a node that is off. It stays so until 'setpoint dev heal', or until\n" +
				"'setpoint dev' is started again: then nodes and servers are there, and pods still crash." + forWhom,
			Example: "  setpoint dev kill node sim-1\n  setpoint dev kill server server-2\n  setpoint dev kill pod web-5d9c -n shop",
		}),
		s.part(admin.HealLesson, &cobra.Command{
			Use: "heal node|server|pod NAME", Short: "Undo 'setpoint dev kill'",
			Long: "Undo 'setpoint dev kill': the node is switched on, the server is started again with the data that it has, the pod's containers run.\n" +
				"What was not killed stays as it is." + forWhom,
			Example: "  setpoint dev heal node sim-1",
		}),
		s.advance(),
	}
}

// part is a command about a node, a server or a pod.
func (s *Shell) part(order string, cmd *cobra.Command) *cobra.Command {
	var kubeconfig, namespace string
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the pod (default: that of the kubeconfig's context)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted, err := s.wanted(order, kubeconfig, namespace, args)
		if err != nil {
			return err
		}
		if err := s.send(cmd.Context(), kubeconfig, askTimeout, wanted); err != nil {
			return err
		}
		fmt.Fprintf(s.Escaped(cmd.OutOrStdout()), "%s %s %s\n", wanted.Part, wanted.Name, now(order, wanted.Part))
		return nil
	}
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs // RunE judges them
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{admin.NodePart, admin.ServerPart, admin.PodPart}, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// wanted is the order that was meant. A pod without a namespace is in the flag's, or else in that of the kubeconfig's context.
func (s *Shell) wanted(order, kubeconfig, namespace string, args []string) (admin.LessonOrder, error) {
	if len(args) != 2 {
		return admin.LessonOrder{}, s.Mistake(errPart)
	}
	wanted := admin.LessonOrder{Order: order, Part: args[0], Name: args[1]}
	of, _, named := strings.Cut(wanted.Name, "/")
	switch {
	case wanted.Validate() != nil:
		return wanted, s.Mistake(errPart)
	case wanted.Part != admin.PodPart:
		return wanted, nil
	case named && namespace != "" && of != namespace:
		return wanted, s.Mistake(errNamespace)
	case named:
		return wanted, nil
	}
	if namespace == "" {
		var err error
		if namespace, err = s.Namespace(kubeconfig); err != nil {
			return wanted, err
		}
	}
	wanted.Name = namespace + "/" + wanted.Name
	return wanted, nil
}

// now is what has become of a part.
func now(order, part string) string {
	switch {
	case order == admin.HealLesson && part == admin.PodPart:
		return "runs"
	case order == admin.HealLesson && part == admin.ServerPart:
		return "is started"
	case order == admin.HealLesson:
		return "is switched on"
	case part == admin.PodPart:
		return "has crashed"
	case part == admin.ServerPart:
		return "stops"
	}
	return "is switched off"
}

func (s *Shell) advance() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "advance DURATION", Short: "Let time pass for a cluster that has a clock of its own",
		Long: "Let time pass for a cluster, and for nobody else: in steps, after each of which its control loops do what there is to do then.\n" +
			"Only a cluster in memory has a clock of its own, as those of 'setpoint testserver' (Config.InMemory of the library); 'setpoint dev'\n" +
			"goes by the machine's, and refuses." +
			forWhom,
		Example: "  setpoint dev advance 5m --kubeconfig of-the-test-server",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return s.Mistake(errBy)
		}
		by, err := time.ParseDuration(args[0])
		wanted := admin.LessonOrder{Order: admin.AdvanceLesson, By: by}
		if err != nil || wanted.Validate() != nil {
			return s.Mistake(errBy)
		}
		if err := s.send(cmd.Context(), kubeconfig, advanceTimeout, wanted); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%v have passed\n", by)
		return nil
	}
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs // RunE judges them
	return cmd
}

func (s *Shell) send(ctx context.Context, kubeconfig string, limit time.Duration, order admin.LessonOrder) error {
	return s.AskServers(ctx, kubeconfig, limit, func(ctx context.Context, config *rest.Config) error {
		return admin.OrderLesson(ctx, config, order)
	})
}
