"""Work done side by side: pools of threads, processes and Dask workers; calls made ahead."""
