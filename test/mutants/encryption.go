package mutants

var ofEncryption = []Mutant{
	{
		Name: "stored-in-the-clear", Bug: "a Secret is stored as it is",
		File:   "apiserver/storage/sealed.go",
		Old:    `	if t == nil || !s.active() {`,
		New:    `	if t == nil || s.active() {`,
		Checks: []Check{{"apiserver/storage", "TestSecretsAreReadEveryWayAndStoredEncrypted"}},
	},
	{
		Name: "encrypted-too-early", Bug: "a value is encrypted before all servers can read it",
		File:   "apiserver/storage/sealed.go",
		Old:    `	if t == nil || !s.active() {`,
		New:    `	if t == nil {`,
		Checks: []Check{{"apiserver/storage", "TestNothingIsEncryptedBeforeAllCanReadIt"}},
	},
	{
		Name: "ciphertexts-can-be-swapped", Bug: "the ciphertext of one object is read as that of another",
		File:   "apiserver/storage/sealed.go",
		Old:    `	plain, ours := bytes.CutPrefix(bound[length:], []byte(key))`,
		New:    `	plain, ours := bound[length+len(key):], true`,
		Checks: []Check{{"apiserver/storage", "TestSwappedCiphertexts"}},
	},
	{
		Name: "rewrites-over-a-write", Bug: "what is encrypted anew takes back what somebody has written meanwhile",
		File:   "apiserver/storage/reencrypt.go",
		Old:    `Precondition: command.AtRevision, Revision: r.ModRevision}`,
		New:    `Precondition: command.Any}`,
		Checks: []Check{{"apiserver/storage", "TestRewritingLosesNoWrite"}},
	},
	{
		Name: "rewrites-after-its-term", Bug: "a leader of the past encrypts anew",
		File:   "apiserver/storage/reencrypt.go",
		Old:    "	OriginFrom(ctx).stamp(&c)\n",
		New:    "",
		Checks: []Check{{"apiserver/storage", "TestRewritingIsFenced"}},
	},
	{
		Name: "level-of-the-absent", Bug: "a cluster with objects leaves behind an older server that is down",
		File:   "raftstore/features.go",
		Old:    `		if err != nil && !begun {`,
		New:    `		if err != nil {`,
		Checks: []Check{{"raftstore", "TestFeatureLevelWaitsForAServerThatIsDown"}},
	},
}
