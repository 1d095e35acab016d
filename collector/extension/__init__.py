"""Extensions: what each may bring, and how they are found."""
