// Package escape attacks the node from inside its pods, and expects every attack to fail.
//
// Each page in testdata is one attack: a pod, what it tries, and what must be true of the host afterwards. The pods are real
// containers of one `setpoint dev`, which all pages share; it runs in network, mount and PID namespaces of its own, so
// that whatever a page leaves behind ends with the test. Only pods that ask for it have users of their own: else that wall
// would stop most attacks, and hide what the others are worth. It needs root.
//
// To add a page, write testdata/NAME.txtar. First comes a comment that says what the attack is and what stops it. The
// pod's image, if it names none, is attacker:v1, which holds nothing but the program in attacker/main.go: each of its arguments is one
// step, such as "mknod /dev/disk b 7 0" or "read /dev/disk", and it prints one line for each, "STEP: ok", "STEP: what it
// read" or "STEP: the error". A step that fails does not keep it from the next. Pods are named as their page. Beside
// testscript's own commands a page has:
//
//	guard FILE...      remember content, mode and owner of the host's files; the page's end sets them back
//	unchanged          they are as they were
//	attack FILE [MAX]  run this pod to its end: stdout is the log of its containers, stderr its phase, reason and message. MAX is for
//	                   attacks that stop the agent, such as 45s: without the wall they end after it
//	start FILE [MAX]   run this pod until it is ready and each of its containers takes the step "wait": stdout is the log until
//	                   then; the page's end deletes it
//	delete             delete the pod now, and wait until it is gone
//	kubectl ARGS...    the embedded kubectl; it has to end within a time limit
//	listen PORT        accept connections at this port on all addresses of the node, until the page's end
//	[product]          the program of the shims is the whole product, which does not carry the small helper
//
// $SETPOINT is the product's file. The image links:v1 is the same with links where a runtime looks for directories (image_test.go).
//
// `go test ./test/escape -run 'TestEscapes/NAME'` runs one page. A new page needs a mutant of the wall that it proves
// (test/mutants): `make mutants FOCUS=name` takes the wall away, safely, and the page must fail.
package escape
