"""Where live frames come from: files at their pace, cameras, folders; and events beside them."""
