"""What people look at after an identification: figures, a page, and the comparison's cells."""
