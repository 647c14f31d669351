package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/cmd/setpoint/token"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
)

// tokenTimeout bounds how long one server may take to answer.
const tokenTimeout = 10 * time.Second

func newToken() *cobra.Command {
	shell := &token.Shell{
		KubeconfigUsage: kubeconfigUsage, OutputUsage: outputUsage, Finish: withSources, AskAPI: askAPI, AskServers: askServers,
		Print: printAs, Mistake: func(err error) error { return usageError{err} },
	}
	return group(&cobra.Command{Use: "token", Short: "Create, list and revoke the tokens with which machines join"}, shell.Commands()...)
}

// askAPI asks the API of one server after the other until one answers.
func askAPI(ctx context.Context, kubeconfig string, ask func(context.Context, kubernetes.Interface) error) error {
	configs, err := contexts(kubeconfig)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		client, err := kubernetes.NewForConfig(configs[name])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
		err = ask(ctx, client)
		cancel()
		if jointoken.IsMistake(err) {
			return usageError{err}
		}
		if !errors.As(err, new(interface{ Timeout() bool })) || errors.As(err, new(apierrors.APIStatus)) {
			return err
		}
		failed = append(failed, err)
	}
	return fmt.Errorf("no server answers: %w", errors.Join(failed...))
}
