package loops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// passTimeout is how long step waits for its pass to end, passInterval the time between two looks.
	passTimeout  = 3 * time.Second
	passInterval = 50 * time.Millisecond
)

var (
	errName = errors.New("name one loop or queue of 'setpoint loops', or --all")
	errStep = errors.New("name one loop or queue of 'setpoint loops'")
)

const holdLong = "\n\nThis is for administrators, and for clusters to learn on alone, such as 'setpoint dev' runs; other servers refuse. A pause is in the\n" +
	"memory of the server on which the loops act, and ends with its term: when it stops, or another one leads."

func (s *Shell) pause() *cobra.Command {
	return s.order(admin.PauseLoop, "paused", &cobra.Command{
		Use: "pause NAME", Short: "Have a control loop begin no more passes",
		Long:    "Have a control loop begin no more passes. Those that have begun end; what waits stays in its queue." + holdLong,
		Example: "  setpoint loops pause deployment\n  setpoint loops pause --all",
	})
}

func (s *Shell) resume() *cobra.Command {
	return s.order(admin.ResumeLoop, "running", &cobra.Command{
		Use: "resume NAME", Short: "Have a paused control loop go on",
		Long:    "Have a paused control loop go on with what waits." + holdLong,
		Example: "  setpoint loops resume deployment\n  setpoint loops resume --all",
	})
}

// order is a command that orders something of one loop or of all.
func (s *Shell) order(order, now string, cmd *cobra.Command) *cobra.Command {
	var kubeconfig string
	var all bool
	s.common(cmd, &kubeconfig)
	cmd.Flags().BoolVar(&all, "all", false, "all loops")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 || all == (len(args) == 1) {
			return s.Mistake(errName)
		}
		wanted := admin.PaceOrder{Order: order}
		if !all {
			wanted.Loop = args[0]
		}
		answer, err := s.send(cmd.Context(), kubeconfig, wanted)
		if err != nil {
			return err
		}
		for _, loop := range answer.Loops {
			fmt.Fprintf(s.Escaped(cmd.OutOrStdout()), "%s is %s on %s, %s\n", loop.Queue, now, answer.Server, waiting(loop))
		}
		return nil
	}
	return s.withName(cmd)
}

// withName lets a command take a name, which it judges by itself.
func (s *Shell) withName(cmd *cobra.Command) *cobra.Command {
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs
	return cmd
}

func (s *Shell) send(ctx context.Context, kubeconfig string, order admin.PaceOrder) (answer admin.PaceAnswer, err error) {
	err = s.AskServers(ctx, kubeconfig, askTimeout, func(ctx context.Context, config *rest.Config) (err error) {
		answer, err = admin.OrderPace(ctx, config, order)
		return err
	})
	return answer, err
}

func waiting(loop numbers.Report) string {
	switch loop.Depth {
	case 0:
		return "nothing waits"
	case 1:
		return "1 key waits"
	}
	return fmt.Sprintf("%d keys wait", loop.Depth)
}

func (s *Shell) step() *cobra.Command {
	o := &options{Shell: s, idle: true}
	cmd := &cobra.Command{
		Use: "step NAME", Short: "Have a paused control loop make one pass, and show it",
		Long: "Have a paused control loop make one pass, about the key that waits longest, and show what it did. If nothing waits, the pass is made\n" +
			"when something does." + holdLong,
		Example: "  setpoint loops step deployment",
	}
	s.common(cmd, &o.kubeconfig)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return s.Mistake(errStep)
		}
		answer, err := s.send(cmd.Context(), o.kubeconfig, admin.PaceOrder{Order: admin.StepLoop, Loop: args[0]})
		if err != nil {
			return err
		}
		return o.showStep(cmd.Context(), s.Escaped(cmd.OutOrStdout()), answer)
	}
	return s.withName(cmd)
}

// showStep waits for the pass that a step allows, and prints it.
func (o *options) showStep(ctx context.Context, w io.Writer, answer admin.PaceAnswer) error {
	if len(answer.Loops) == 0 {
		return admin.ErrLoopEnded
	}
	queue := answer.Loops[0].Queue
	for until := time.Now().Add(passTimeout); time.Now().Before(until); {
		report, err := o.fetch(ctx, &answer.Next)
		if err != nil {
			return err
		}
		for i := range report.Passes {
			if report.Passes[i].Queue == queue {
				printHead(w)
				printPass(w, &report.Passes[i])
				return nil
			}
		}
		answer.Next = report.Next
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(passInterval):
		}
	}
	fmt.Fprintf(w, "%s has made no pass yet: %s. The step is for its next one\n", queue, waiting(answer.Loops[0]))
	return nil
}
