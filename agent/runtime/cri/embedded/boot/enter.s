// Functions of the runtime without a body in enter.go need a file of assembly beside it.
