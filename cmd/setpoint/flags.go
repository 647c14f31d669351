package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/cmd/setpoint/spelling"
	"github.com/setpoint-io/setpoint/internal/clip"
)

const envPrefix = "SETPOINT_"

// withSources lets every flag of cmd also come from SETPOINT_<FLAG> and from a
// file named by --config. A flag on the command line wins, then the environment.
func withSources(cmd *cobra.Command) *cobra.Command {
	inGroup(cmd.Flags(), ofEveryCommand, func() {
		cmd.Flags().String("config", "", "YAML file with values for flags, by their names")
		cmd.Flags().String("log-level", "info", "what to log: debug, info, warn, error")
	})
	completeFlags(cmd)
	run := cmd.RunE
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := fillFlags(cmd.Flags()); err != nil {
			return usageError{err}
		}
		return run(cmd, args)
	}
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no arguments, only flags: run '%s --help'", cmd.Name(), cmd.CommandPath())}
}

func fillFlags(flags *pflag.FlagSet) error {
	if err := setUnset(flags, func(name string) (string, bool) { return os.LookupEnv(envName(name)) }); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	path, _ := flags.GetString("config")
	if path == "" {
		return nil
	}
	values, err := readConfig(path)
	if err != nil {
		return err
	}
	for name := range values {
		if flags.Lookup(name) == nil {
			return fmt.Errorf(
				"%s: unknown setting %q%s: the names are those of the flags",
				path,
				name,
				didYouMean(spelling.Near(name, flagNames(flags))),
			)
		}
	}
	return setUnset(flags, func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	})
}

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setUnset sets every flag that nothing has set so far.
func setUnset(flags *pflag.FlagSet, lookup func(name string) (string, bool)) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(f.Name)
		if f.Changed || !ok || failed != nil {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			failed = fmt.Errorf("%s: %w", f.Name, err)
		}
	})
	return failed
}

func readConfig(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var raw map[string]any
	if err := yaml.UnmarshalStrict(text, &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	values := make(map[string]string, len(raw))
	for name, value := range raw {
		values[name] = fmt.Sprint(value)
	}
	return values, nil
}

// newLogger logs to standard error, no more than clip.ValueBytesMax of one value. Levels are checked here, so that a wrong one
// is a usage error.
func newLogger(cmd *cobra.Command) (*slog.Logger, error) {
	text, _ := cmd.Flags().GetString("log-level")
	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %q: use debug, info, warn or error", text)}
	}
	logger := slog.New(clip.Handler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	quietLibraries(logger)
	return logger, nil
}
