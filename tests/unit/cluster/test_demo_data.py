from kvstrata.cluster.demo_data import kv_shapes, library_files


def test_shapes_are_of_the_size_that_the_models_need() -> None:
    sizes = {(each.model, each.tokens): each.size_bytes for each in kv_shapes()}
    # Llama-3.1-8B keeps 128 KiB a token, DeepSeek-V3 some 69 KiB, both in 16 bits.
    assert sizes["Llama-3.1-8B", 16] == 16 * 128 * 1024
    assert sizes["DeepSeek-V3 (MLA)", 256] == 256 * 61 * 576 * 2


def test_files_are_real_and_differ_in_size() -> None:
    files = library_files()
    assert len(files) > 100
    assert len({path.stat().st_size for path in files}) > 50
