"""The status page: snapshots to page values to HTML, pure; and the little that keeps it fed and served."""
