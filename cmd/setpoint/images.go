package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/agent/host"
)

func newImages() *cobra.Command {
	return group(&cobra.Command{
		Use: "images", SuggestFor: []string{"image", "ctr", "crictl", "nerdctl", "docker"},
		Short: "List, pull, import, prune and save the container images of this machine's node",
		Long: "List, pull, import, prune and save the container images of this machine's node, those of the embedded runtime.\n\n" +
			"The agent that runs with the data directory is asked ('setpoint agent', 'dev' or 'cri'). While none runs, the images are\n" +
			"opened in its place, and it cannot start before the command has ended. Images are root's. Those of another container\n" +
			"runtime are asked for with its own tools.",
	}, newImagesList(), reachesTheWeb(newImagesPull()), newImagesImport(), newImagesPrune(), newImagesSave())
}

// onImages is what a command does with images.
type onImages func(cmd *cobra.Command, images *host.ImageClient, args []string) error

// imagesCommand has a data directory, and runs with its images once check has found no mistake in the flags.
func imagesCommand(cmd *cobra.Command, check func(*cobra.Command) error, run onImages) *cobra.Command {
	var dataDir string
	cmd.Flags().StringVar(&dataDir, "data-dir", defaultDataDir(), "the data directory of the agent, dev or cri")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dataDir == "" {
			return usageError{errNoDataDir}
		}
		if err := check(cmd); err != nil {
			return err
		}
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		absolute, err := filepath.Abs(dataDir)
		if err != nil {
			return err
		}
		registries, _ := cmd.Flags().GetString(registriesFlagName) // of those commands that fetch
		images, closeAll, err := host.OpenImages(cmd.Context(), absolute, registries, logger)
		if err != nil {
			return err
		}
		defer closeAll()
		return run(cmd, images, args)
	}
	return withSources(cmd)
}

// wantsArguments is for what withSources gave none.
func wantsArguments(cmd *cobra.Command, what string) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("which %s? run '%s --help'", what, cmd.CommandPath())}
		}
		return nil
	}
	return cmd
}

// outputFlag adds --output, and returns the check of its value.
func outputFlag(cmd *cobra.Command, output *string) func(*cobra.Command) error {
	cmd.Flags().StringVarP(output, "output", "o", "table", outputUsage)
	return func(*cobra.Command) error { return checkOutput(*output) }
}

func newImagesList() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "Show the images, which of them containers use, and the pulls under way",
	}
	return imagesCommand(cmd, outputFlag(cmd, &output), func(cmd *cobra.Command, images *host.ImageClient, _ []string) error {
		list, err := images.List(cmd.Context())
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, list, func(w io.Writer) error { return printImages(escaped{w}, list, time.Now()) })
	})
}

func printImages(w io.Writer, list host.ImageList, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "IMAGE\tID\tSIZE\tAGE\tUSE")
	for _, image := range list.Images {
		for _, name := range namesOf(image) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n",
				name, shortID(image.ID), mebibytes(int64(image.SizeBytes)), duration.HumanDuration(now.Sub(image.LoadedAt)), useOf(image))
		}
	}
	if len(list.Pulling) > 0 {
		fmt.Fprintln(t, "\nPULLING\tDONE\tSINCE")
	}
	for _, p := range list.Pulling {
		fmt.Fprintf(t, "%s\t%s\t%s\n", p.Image, doneOf(p), duration.HumanDuration(now.Sub(p.Since)))
	}
	return t.Flush()
}

// namesOf are the tags of an image, or the digest by which it was pulled.
func namesOf(image host.Image) []string {
	switch {
	case len(image.Tags) > 0:
		return image.Tags
	case len(image.Digests) > 0:
		return image.Digests[:1]
	}
	return []string{"<none>"}
}

const shortIDDigits = 12

func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), shortIDDigits)]
}

func useOf(image host.Image) string {
	switch {
	case image.InUse:
		return "in use"
	case image.Kept:
		return "kept"
	}
	return "-"
}

func doneOf(p host.ImagePull) string {
	if p.TotalBytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%s of %s", mebibytes(p.Bytes), mebibytes(p.TotalBytes))
}

func newImagesPrune() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove the images that no container uses",
		Long: "Remove the images that no container uses. Those stay that an archive brought, in --images-dir or by 'setpoint images import',\n" +
			"and the demo images: no registry might have them.",
	}
	return imagesCommand(cmd, outputFlag(cmd, &output), func(cmd *cobra.Command, images *host.ImageClient, _ []string) error {
		pruned, err := images.Prune(cmd.Context())
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, pruned, func(w io.Writer) error {
			for _, image := range pruned.Images {
				fmt.Fprintln(escaped{w}, "removed", strings.Join(namesOf(image), ", "))
			}
			_, err := fmt.Fprintln(w, mebibytes(int64(pruned.FreedBytes)), "freed")
			return err
		})
	})
}

// completeImages completes the names of images that are here.
func completeImages(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	logger, err := newLogger(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	dataDir, _ := cmd.Flags().GetString("data-dir")
	ctx, cancel := context.WithTimeout(cmd.Context(), answerTimeout)
	defer cancel()
	images, closeAll, err := host.OpenImages(ctx, dataDir, "", logger)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer closeAll()
	list, err := images.List(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, image := range list.Images {
		for _, tag := range image.Tags {
			if !slices.Contains(args, tag) {
				names = append(names, tag+"\t"+shortID(image.ID))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
