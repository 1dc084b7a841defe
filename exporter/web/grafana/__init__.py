"""Grafana's JSON datasource: requests of every plugin generation to one value, series and tables to answers."""
