"""Programs that train on several processes, made of a skeleton and a fault or its right twin."""
