"""Thousands of repositories as one campaign: planned, worked on anywhere, resumed after any end, published at a pace."""
