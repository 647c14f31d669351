package translations

import (
	"os"
	"slices"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

// skipped: kubectl asked for texts, and none were loaded.
var skipped bool

func init() {
	if err := i18n.SetLoadTranslationsFunc(load); err != nil {
		panic(err)
	}
}

// load is called once, by the first of kubectl's packages.
func load() error {
	if !slices.Contains(os.Args, "kubectl") || english(os.Getenv) {
		skipped = true
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
}

// english reports whether kubectl would translate its texts, which are English, into English: the language of the environment, in the
// order in which kubectl looks for it, is English, that of C programs, or none.
func english(getenv func(string) string) bool {
	language := ""
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if language = getenv(name); language != "" {
			break
		}
	}
	language, _, encoded := strings.Cut(language, ".")
	return !encoded || language == "C" || language == "POSIX" || strings.HasPrefix(language, "en_")
}

// Skipped reports whether kubectl's packages came for texts after the hook was set, and got none.
func Skipped() bool { return skipped }
