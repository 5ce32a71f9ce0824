"""Keys to objects: the server's request path and the client. Is told who owns which slot."""
