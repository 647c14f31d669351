// Command collector is the file receiver of the OpenTelemetry collector with its operator for containers, as it stands in a DaemonSet on each
// node: it follows /var/log/pods, and prints each entry as a line of JSON until SIGTERM.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	factory := filelogreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	err := confmap.NewFromStringMap(map[string]any{
		"include": []any{"/var/log/pods/*/*/*.log"}, "include_file_path": true, "start_at": "beginning",
		"operators": []any{map[string]any{"type": "container"}},
	}).Unmarshal(config)
	if err != nil {
		return err
	}
	printer, err := consumer.NewLogs(printAll)
	if err != nil {
		return err
	}
	receiver, err := factory.CreateLogs(ctx, receivertest.NewNopSettings(factory.Type()), config, printer)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	fmt.Println("collecting")
	<-ctx.Done()
	return receiver.Shutdown(context.WithoutCancel(ctx))
}

// printAll prints the attributes of what the log is of and of each entry, and its text as "body".
func printAll(_ context.Context, logs plog.Logs) error {
	var errs []error
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, entry := range scope.LogRecords().All() {
				line := map[string]any{"body": entry.Body().AsString()}
				for _, attributes := range []map[string]any{resource.Resource().Attributes().AsRaw(), entry.Attributes().AsRaw()} {
					for key, value := range attributes {
						line[key] = value
					}
				}
				errs = append(errs, json.NewEncoder(os.Stdout).Encode(line))
			}
		}
	}
	return errors.Join(errs...)
}
