// Package past has the commands about what objects were: `setpoint history`, `diff` and `at`.
//
// It owns their flags and texts, how changes are printed, how times are written, and the transport by which a client reads objects as they
// were at a revision. It asks servers through server/admin.
//
// Promises: it changes nothing but for `setpoint history purge`, and what goes through that transport neither; colours are for terminals only, and what others have written
// cannot move the cursor.
//
// Tested here for what it prints, reads and sends, and through the binary by the scripts history, diff, purge and undelete.
package past
