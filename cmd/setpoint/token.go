package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
)

// tokenTimeout bounds how long one server may take to answer.
const tokenTimeout = 10 * time.Second

// outputKubeconfig is an output of `setpoint token create` alone.
const outputKubeconfig = "kubeconfig"

func newToken() *cobra.Command {
	return group(&cobra.Command{Use: "token", Short: "Create, list and revoke the tokens with which machines join"},
		newTokenCreate(), newTokenList(), newTokenDelete())
}

func newTokenCreate() *cobra.Command {
	var kubeconfig, output, description string
	var ttl time.Duration
	var nodes int
	cmd := &cobra.Command{
		Use: "create", Short: "Print a new token for 'setpoint agent --token-file'",
		Long: "Print a new token for 'setpoint agent --token-file'. Whoever has it may add machines under names that are free,\n" +
			"as long as it lives, and at most --nodes of them: it is a secret.",
		Example: "  setpoint token create --ttl 1h >node.token\n  setpoint token create -o kubeconfig >bootstrap.kubeconfig   # for a stock kubelet",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table (the token alone), json, yaml, or kubeconfig (a stock kubelet's --bootstrap-kubeconfig)")
	cmd.Flags().DurationVar(&ttl, "ttl", trust.TokenLife, "how long it is valid, at most 8760h")
	cmd.Flags().IntVar(&nodes, "nodes", jointoken.NodesDefault, fmt.Sprintf("how many names of nodes it may take, at most %d", jointoken.NodesMax))
	cmd.Flags().StringVar(&description, "description", "", "what it is for, shown by 'setpoint token list'")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var token *jointoken.Token
		var ofKubelet []byte
		err := askAPI(cmd.Context(), kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
			token, err = jointoken.Create(ctx, client, jointoken.Wanted{TTL: ttl, Nodes: nodes, Description: description}, time.Now())
			if err == nil && output == outputKubeconfig {
				ofKubelet, err = jointoken.Kubeconfig(ctx, client, token)
			}
			return err
		})
		if err != nil {
			return err
		}
		if output == outputKubeconfig {
			_, err := cmd.OutOrStdout().Write(ofKubelet)
			return err
		}
		return printAs(cmd.OutOrStdout(), output, token, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, token.Token)
			return err
		})
	}
	return withSources(cmd)
}

func newTokenList() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "list", Short: "Show valid tokens, without their secrets"}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tokens, err := listTokens(cmd.Context(), kubeconfig)
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, tokens, func(w io.Writer) error { return printTokens(w, tokens) })
	}
	return withSources(cmd)
}

func listTokens(ctx context.Context, kubeconfig string) (tokens []jointoken.Token, err error) {
	return tokens, askAPI(ctx, kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
		tokens, err = jointoken.List(ctx, client)
		return err
	})
}

func printTokens(w io.Writer, tokens []jointoken.Token) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "ID\tNODES\tEXPIRES\tDESCRIPTION")
	for _, token := range tokens {
		expires := "never"
		if token.Expires != nil {
			expires = token.Expires.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%d/%d\t%s\t%s\n", token.ID, token.Nodes, token.NodesMax, expires, token.Description)
	}
	return t.Flush()
}

func newTokenDelete() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "delete ID...", Short: "Revoke tokens",
		Long: "Revoke tokens, named by their ids or by their whole text. Nodes that have joined with one stay.",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			var id string
			err := askAPI(cmd.Context(), kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
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
	cmd = withSources(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("which token? 'setpoint token list' shows their ids: run '%s --help'", cmd.CommandPath())}
		}
		return nil
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		tokens, err := listTokens(cmd.Context(), kubeconfig)
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

// askAPI asks the API of one server after the other until one answers.
func askAPI(ctx context.Context, kubeconfig string, ask func(context.Context, kubernetes.Interface) error) error {
	configs, err := contexts(kubeconfig)
	if err != nil {
		return err
	}
	var last error
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		client, err := kubernetes.NewForConfig(configs[name])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
		err = ask(ctx, client)
		cancel()
		if errors.Is(err, jointoken.ErrLife) || errors.Is(err, jointoken.ErrNodes) || errors.Is(err, jointoken.ErrID) {
			return usageError{err}
		}
		if !errors.As(err, new(interface{ Timeout() bool })) || errors.As(err, new(apierrors.APIStatus)) {
			return err
		}
		last = err
	}
	return fmt.Errorf("no server answers: %w", last)
}
