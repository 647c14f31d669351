package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/server/admin"
)

// outputKubeconfig is an output of `setpoint token create` alone.
const outputKubeconfig = "kubeconfig"

// orderTimeout bounds how long one server may take to make a token.
const orderTimeout = 10 * time.Second

var (
	errFor        = errors.New("--for: want agent or server")
	errKubeconfig = errors.New("-o kubeconfig is for kubelets: leave out --for server")
)

// Shell is what all commands share: how servers are asked, and how it is printed what they say.
type Shell struct {
	// KubeconfigUsage and OutputUsage describe the flags of these names.
	KubeconfigUsage, OutputUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskAPI asks the API of one server after the other until one answers, AskServers their services, each for a limited time.
	AskAPI     func(ctx context.Context, kubeconfig string, ask func(context.Context, kubernetes.Interface) error) error
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// Print prints a value as --output wants it.
	Print func(w io.Writer, output string, value any, table func(io.Writer) error) error
	// Mistake is an error of the command line.
	Mistake func(error) error
}

// Commands are those below `setpoint token`.
func (s *Shell) Commands() []*cobra.Command {
	return []*cobra.Command{s.create(), s.list(), s.delete()}
}

// wanted are the flags of `setpoint token create`.
type wanted struct {
	jointoken.Wanted
	kubeconfig, output, whom string
}

func (s *Shell) create() *cobra.Command {
	var w wanted
	cmd := &cobra.Command{
		Use: "create", Short: "Print a new token with which agents, or servers, join",
		Long: "Print a new token for --token-file of 'setpoint agent'. Whoever has it may add machines under names that are free, as long as\n" +
			"it lives, and at most --nodes of them: it is a secret.\n\n" +
			"With --for server it is one for 'setpoint server --join', and lets in servers and no agents. Whoever has it gets the keys of the\n" +
			"cluster, with which he can do everything: it is a secret as they are.",
		Example: "  setpoint token create --ttl 1h >node.token\n  setpoint token create --for server --ttl 1h --nodes 2 >server.token\n" +
			"  setpoint token create -o kubeconfig >bootstrap.kubeconfig   # for a stock kubelet",
	}
	cmd.Flags().StringVar(&w.kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.Flags().StringVarP(&w.output, "output", "o", "table", "table (the token alone), json, yaml, or kubeconfig (a stock kubelet's --bootstrap-kubeconfig)")
	cmd.Flags().StringVar(&w.whom, "for", jointoken.ForAgents, "whom it lets in: agent or server")
	cmd.Flags().DurationVar(&w.TTL, "ttl", 0, fmt.Sprintf("how long it is valid, at most 8760h (default: %s, of servers %s)",
		tokens.Life, tokens.ServerLife))
	cmd.Flags().IntVar(&w.Nodes, "nodes", 0, fmt.Sprintf("how many names it may take: of nodes at most %d, of servers %d (default: %d, %d)",
		jointoken.NodesMax, jointoken.ServersMax, jointoken.NodesDefault, jointoken.ServersDefault))
	cmd.Flags().StringVar(&w.Description, "description", "", "what it is for, shown by 'setpoint token list'")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case w.whom != jointoken.ForAgents && w.whom != jointoken.ForServers:
			return s.Mistake(errFor)
		case w.whom == jointoken.ForServers && w.output == outputKubeconfig:
			return s.Mistake(errKubeconfig)
		}
		if !cmd.Flags().Changed("ttl") {
			w.TTL = map[string]time.Duration{jointoken.ForAgents: tokens.Life, jointoken.ForServers: tokens.ServerLife}[w.whom]
		}
		if !cmd.Flags().Changed("nodes") {
			w.Nodes = map[string]int{jointoken.ForAgents: jointoken.NodesDefault, jointoken.ForServers: jointoken.ServersDefault}[w.whom]
		}
		return s.print(cmd, w)
	}
	return s.Finish(cmd)
}

func (s *Shell) print(cmd *cobra.Command, w wanted) error {
	token, ofKubelet, err := s.make(cmd.Context(), w)
	if jointoken.IsMistake(err) {
		return s.Mistake(err)
	}
	if err != nil {
		return err
	}
	if w.output == outputKubeconfig {
		_, err := cmd.OutOrStdout().Write(ofKubelet)
		return err
	}
	return s.Print(cmd.OutOrStdout(), w.output, token, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, token.Token)
		return err
	})
}

// make has the cluster make the token, and returns the kubeconfig too that a kubelet needs, if that is wanted.
func (s *Shell) make(ctx context.Context, w wanted) (token *jointoken.Token, ofKubelet []byte, err error) {
	if w.whom == jointoken.ForServers {
		if err := jointoken.ValidateServer(w.Wanted); err != nil {
			return nil, nil, err
		}
		err = s.AskServers(ctx, w.kubeconfig, orderTimeout, func(ctx context.Context, config *rest.Config) (err error) {
			token, err = admin.CreateServerToken(ctx, config, w.Wanted)
			return err
		})
		return token, nil, err
	}
	order := jointoken.Order{Wanted: w.Wanted}
	err = s.AskAPI(ctx, w.kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
		token, err = order.Create(ctx, client, time.Now())
		if err == nil && w.output == outputKubeconfig {
			ofKubelet, err = jointoken.Kubeconfig(ctx, client, token)
		}
		return err
	})
	return token, ofKubelet, err
}

func (s *Shell) list() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "list", Short: "Show valid tokens, without their secrets"}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", s.OutputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tokens, err := s.tokens(cmd.Context(), kubeconfig)
		if err != nil {
			return err
		}
		return s.Print(cmd.OutOrStdout(), output, tokens, func(w io.Writer) error { return printTokens(w, tokens) })
	}
	return s.Finish(cmd)
}

func (s *Shell) tokens(ctx context.Context, kubeconfig string) (tokens []jointoken.Token, err error) {
	err = s.AskAPI(ctx, kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
		tokens, err = jointoken.List(ctx, client)
		return err
	})
	return tokens, err
}

func printTokens(w io.Writer, tokens []jointoken.Token) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "ID\tFOR\tNODES\tEXPIRES\tDESCRIPTION")
	for _, token := range tokens {
		expires := "never"
		if token.Expires != nil {
			expires = token.Expires.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%d/%d\t%s\t%s\n", token.ID, token.For, token.Nodes, token.NodesMax, expires, token.Description)
	}
	return t.Flush()
}

func (s *Shell) delete() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "delete ID...", Short: "Revoke tokens",
		Long: "Revoke tokens, named by their ids or by their whole text. Machines that have joined with one stay.",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			var id string
			err := s.AskAPI(cmd.Context(), kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
				id, err = jointoken.Delete(ctx, client, name)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), id, "deleted")
		}
		return nil
	}
	cmd = s.Finish(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return s.Mistake(fmt.Errorf("which token? 'setpoint token list' shows their ids: run '%s --help'", cmd.CommandPath()))
		}
		return nil
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		tokens, err := s.tokens(cmd.Context(), kubeconfig)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for _, token := range tokens {
			if !slices.Contains(args, token.ID) {
				ids = append(ids, token.ID+"\t"+token.Description)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}
