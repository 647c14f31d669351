package man

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var errNoFolder = errors.New("--out must name a folder that is there")

// New is the command. Its pages are of the whole tree that it hangs in. finish gives it the flags of every command, mistake marks a
// wrong usage.
func New(finish func(*cobra.Command) *cobra.Command, mistake func(error) error) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use: "man", Short: "Write a manual page for each command into a folder",
		Long:    "Write a manual page for each command into a folder. 'man' finds them in /usr/local/share/man/man1.",
		Example: "  sudo setpoint man --out /usr/local/share/man/man1\n  man setpoint-server",
	}
	cmd.Flags().StringVar(&folder, "out", "", "folder for the pages, which must be there")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if folder == "" {
			return mistake(errNoFolder)
		}
		asMarkdown(cmd.Root(), map[*pflag.Flag]bool{})
		return writeAll(cmd.Root(), folder)
	}
	return finish(cmd)
}

func writeAll(cmd *cobra.Command, folder string) error {
	if err := write(cmd, folder); err != nil {
		return err
	}
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if err := writeAll(child, folder); err != nil {
			return err
		}
	}
	return nil
}

// noDate stands in each page until it is taken out: the same program writes the same pages.
var noDate = time.Time{}

func write(cmd *cobra.Command, folder string) error {
	var page bytes.Buffer
	header := doc.GenManHeader{
		Title: strings.ToUpper(name(cmd)), Section: "1", Date: &noDate, Source: "setpoint " + cmd.Root().Version, Manual: "Setpoint",
	}
	cmd.DisableAutoGenTag = true
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	text := strings.Replace(page.String(), noDate.Format("Jan 2006"), "", 1)
	return os.WriteFile(filepath.Join(folder, name(cmd)+".1"), []byte(text), 0o644)
}

func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }
