// Package nodefirewall is the condition by which a Node tells that other software of its machine forbids packets that pods need.
//
// It owns the condition's type, its reasons, and the form of its message, which names what is blocked and the command that ends it.
// Agents set it; those who explain what becomes of packets read it. It calls nothing of this module.
//
// Promises: it is pure, and Of reads what Condition has written. Tested as a table.
package nodefirewall
