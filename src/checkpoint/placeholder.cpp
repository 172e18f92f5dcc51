// Placeholder until the folder's first source; remove it.
