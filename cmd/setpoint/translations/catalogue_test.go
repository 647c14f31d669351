package translations_test

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/util/i18n"

	_ "github.com/setpoint-io/setpoint/cmd/setpoint/translations" // before kubectl's packages
)

// TestEnglishIsNotTranslated: no text of kubectl's commands is another one in its English catalogues, and many are in the German one.
func TestEnglishIsNotTranslated(t *testing.T) {
	texts := texts()
	for language, want := range map[string]bool{"default": false, "en_US": false, "de_DE": true} {
		if err := i18n.LoadTranslations("kubectl", func() string { return language }); err != nil {
			t.Fatal(err)
		}
		translated := 0
		for text := range texts {
			if got := i18n.T(text); got != text {
				translated++
				if !want {
					t.Errorf("%s: %q is %q", language, text, got)
				}
			}
		}
		if want != (translated > 50) {
			t.Errorf("%s: %d of %d texts are translated", language, translated, len(texts))
		}
	}
}

// texts are the short texts of kubectl's commands and of their flags, as they are in its source: this test is not called kubectl.
func texts() map[string]bool {
	texts := map[string]bool{}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		texts[c.Short] = true
		c.Flags().VisitAll(func(f *pflag.Flag) { texts[f.Usage] = true })
		for _, child := range c.Commands() {
			add(child)
		}
	}
	add(cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{IOStreams: genericiooptions.NewTestIOStreamsDiscard()}))
	return texts
}
